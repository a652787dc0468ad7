"""What a report opens with: its question, the verdict, key figures, one chart, findings, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from gputwin.core.table import Table
from gputwin.report.page import Card, Cards, FigurePart, Findings, Part, Section, Statement

MOST_CARDS = 5
MOST_FINDINGS = 6
P = TypeVar("P", Statement, Cards, FigurePart, Findings)


@dataclass(frozen=True)
class Answer:
    """The top of a report; whatever is unknown is left out."""

    id: str
    question: str
    verdict: Statement | None
    cards: tuple[Card, ...]
    summary: Table | None
    chart: FigurePart | None
    findings: Findings | None
    next_steps: tuple[str, ...]


def answer_of(section: Section) -> tuple[Answer, Section | None]:
    """Return the answer in a section, and the rest of the section as evidence; None where nothing is left.

    The answer takes the section's first statement, its first key figures (five at most), its first chart and its first
    findings (six at most).
    """
    verdict = _first(section, Statement)
    cards = _first(section, Cards)
    chart = _first(section, FigurePart)
    findings = _first(section, Findings)
    shown, left_cards = (cards.cards[:MOST_CARDS], cards.cards[MOST_CARDS:]) if cards is not None else ((), ())
    told, left_told = (findings.remarks[:MOST_FINDINGS], findings.remarks[MOST_FINDINGS:]) if findings else ((), ())
    rest: list[Part] = []
    if left_cards:
        rest.append(Cards(left_cards))
    rest += [part for part in section.parts if not any(part is x for x in (verdict, cards, chart, findings))]
    if left_told:
        rest.append(Findings(left_told, "Further findings"))
    answer = Answer(
        section.id,
        section.question or section.title,
        verdict,
        shown,
        section.summary,
        chart,
        replace(findings, remarks=told) if findings else None,
        section.next_steps,
    )
    evidence = Section(
        f"{section.id}-evidence", section.title, tuple(rest), section.notes, conclusion=section.conclusion
    )
    return answer, evidence if rest else None


def _first(section: Section, kind: type[P]) -> P | None:
    return next((part for part in section.parts if isinstance(part, kind)), None)
