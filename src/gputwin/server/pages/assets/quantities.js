// No line breaks inside a quantity, as in 2 min 16 s or 69.1 %.
const QUANTITY = /\d[\d.,]* (?:%|(?:d|h|min|s|ms|GPUs?|nodes?)\b)(?:(?<=[dhn]) \d+ (?:h|min|s)\b)?/g;
export const keep = (text) => text.replace(QUANTITY, (found) => found.replaceAll(" ", "\u00a0"));
