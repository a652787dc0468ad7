"""Published test tables of Kubernetes, Knative, KEDA and Karpenter, replayed on our rules.

Each adapter is a function `run(case) -> what ours gives`, `agrees(case)` compares it with what the case expects.
"""
