"""KEDA's parts: formulas over triggers, strategies of scaled jobs, and the step between zero and one."""
