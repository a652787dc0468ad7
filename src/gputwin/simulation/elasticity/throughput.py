"""How long a training step takes on n GPUs over k nodes: a model with seven parameters, fitted to measured steps.

Qiao et al., Pollux, OSDI'21, section 3.2: gradients take a + b · batch; synchronising takes a constant and more for each
GPU beyond two, within a node or across nodes; the two overlap more the larger gamma is.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

from gputwin.core.errors import UserError

Floats = npt.NDArray[np.float64]

_FIRST_GUESS = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.5)
_LEAST = 1e-8
_PULL_OVERLAP, _PULL_GROWTH = 0.01, 20.0
"""Weights of the priors; that of growth was chosen by how well six applications extrapolate from 8 GPUs to 64."""


@dataclass(frozen=True)
class Steps:
    """Measured steps: nodes and GPUs used, batch on each GPU, seconds of a step and of its synchronisation."""

    nodes: Floats
    gpus: Floats
    batch: Floats
    step_seconds: Floats
    sync_seconds: Floats

    def of(self, rows: npt.NDArray[np.bool_]) -> Steps:
        """Return some of the measurements."""
        return Steps(
            self.nodes[rows], self.gpus[rows], self.batch[rows], self.step_seconds[rows], self.sync_seconds[rows]
        )


@dataclass(frozen=True)
class StepTime:
    """Parameters of the model, s: compute a + b · batch; sync constants and growths across and within nodes; overlap."""

    compute: float
    compute_per_sample: float
    across: float
    across_per_gpu: float
    within: float
    within_per_gpu: float
    gamma: float

    def compute_seconds(self, batch: Floats) -> Floats:
        """Return how long gradients of a batch take on a GPU, s."""
        return self.compute + self.compute_per_sample * np.asarray(batch, float)

    def sync_seconds(self, nodes: Floats, gpus: Floats) -> Floats:
        """Return how long synchronising takes by itself, s; nothing on one GPU."""
        nodes, gpus = np.asarray(nodes), np.asarray(gpus)
        more = np.maximum(gpus - 2, 0)
        across = self.across + self.across_per_gpu * more
        within = self.within + self.within_per_gpu * more
        return np.where(nodes > 1, across, np.where(gpus > 1, within, _LEAST))

    def step_seconds(self, nodes: Floats, gpus: Floats, batch: Floats) -> Floats:
        """Return how long a step takes, s: the gamma-norm of both parts."""
        both = self.compute_seconds(batch) ** self.gamma + self.sync_seconds(nodes, gpus) ** self.gamma
        return np.asarray(both ** (1.0 / self.gamma))

    def samples_per_second(self, nodes: Floats, gpus: Floats, batch: Floats) -> Floats:
        """Return the throughput P(n), samples a second, at a batch on each GPU."""
        return np.asarray(gpus) * np.asarray(batch) / self.step_seconds(nodes, gpus, batch)


def fit(steps: Steps) -> StepTime:
    """Return the parameters with the least squares of relative errors of compute and step times."""
    from scipy.optimize import least_squares

    if not len(steps.batch):
        raise UserError("no measured steps to fit; give at least one")
    compute = np.log(np.maximum(steps.step_seconds - steps.sync_seconds, _LEAST))
    whole = np.log(steps.step_seconds)

    def errors(logs: Floats) -> Floats:
        model = _model(logs)
        ours = np.log(model.compute_seconds(steps.batch))
        step = np.log(model.step_seconds(steps.nodes, steps.gpus, steps.batch))
        # Few GPUs say little about how synchronising grows with many: growth is pulled to 0, and so is overlap.
        growth = (model.across_per_gpu / model.across, model.within_per_gpu / model.within)
        prior = np.array([_PULL_OVERLAP * (model.gamma - 1.0), *(_PULL_GROWTH * g for g in growth)])
        return np.concatenate([0.5 * (ours - compute), step - whole, prior])

    guess = np.log(np.array(_FIRST_GUESS))
    guess[-1] = np.log(_FIRST_GUESS[-1] - 1.0)
    # A robust loss: a few measured steps are off by a factor.
    found = least_squares(errors, guess, loss="soft_l1", f_scale=0.1, bounds=(np.log(_LEAST), np.log(100.0)))
    return _model(found.x)


def _model(logs: Floats) -> StepTime:
    a, b, c, d, e, f, overlap = (float(value) for value in np.exp(logs))
    return StepTime(a, b, c, d, e, f, 1.0 + min(overlap, 9.0))


def mean_error(model: StepTime, steps: Steps) -> float:
    """Return the mean absolute error of step times as a share of the measured ones."""
    ours = model.step_seconds(steps.nodes, steps.gpus, steps.batch)
    return float(np.abs(ours / steps.step_seconds - 1.0).mean())


def parameters(model: StepTime) -> tuple[float, ...]:
    """Return the seven parameters in order."""
    return astuple(model)
