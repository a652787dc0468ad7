"""Every queueing model with a simulation of it, in groups."""

from __future__ import annotations

from gputwin.studies.validation.cases.arrival_order import arrival_order_cases
from gputwin.studies.validation.cases.gangs_and_loss import gang_and_loss_cases
from gputwin.studies.validation.cases.orders import order_cases
from gputwin.studies.validation.cases.systems import system_cases
from gputwin.studies.validation.replicate import Case


def all_cases() -> list[Case]:
    """Return the cases in the order of the documentation's table."""
    return [*arrival_order_cases(), *order_cases(), *gang_and_loss_cases(), *system_cases()]


__all__ = ["all_cases"]
