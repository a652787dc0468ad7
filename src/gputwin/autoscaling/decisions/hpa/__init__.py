"""The Kubernetes HorizontalPodAutoscaler's own arithmetic: replica calculator, behaviour, reconciliation.

Quantities are whole milli-units as in Kubernetes. Source: kubernetes.io, "Horizontal Pod Autoscaling", and the tests of
`pkg/controller/podautoscaler`.
"""
