"""What well-known labels of nodes say: GPU model and memory, place in the network, spot capacity, GPU sharing."""

from __future__ import annotations

from collections.abc import Mapping

from gputwin.traces.document import Item

GPU_MODEL = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
)
_RACK = ("topology.kubernetes.io/rack", "network.topology.kubernetes.io/rack", "rack")
_DOMAIN = (
    "nvidia.com/gpu.clique",
    "network.topology.kubernetes.io/block",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
)
_SPOT = {
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacitytype": "spot",
    "kubernetes.azure.com/scalesetpriority": "spot",
}


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)


def plain_model(name: str) -> str:
    """Return a GPU product name without the note that the GPU is shared in time."""
    return name.removesuffix("-SHARED")


def gpu_model(labels: Mapping[str, str]) -> str | None:
    """Return the GPU model."""
    model = _first(labels, GPU_MODEL)
    return plain_model(model) if model else None


def rack(labels: Mapping[str, str]) -> str | None:
    """Return the rack, where the cluster labels one."""
    return _first(labels, _RACK)


def network_domain(labels: Mapping[str, str]) -> str | None:
    """Return the narrowest labelled part of the network above the rack: NVLink clique, block or zone."""
    return _first(labels, _DOMAIN)


def is_spot(labels: Mapping[str, str]) -> bool:
    """Return whether the node may be taken away."""
    return any(_SPOT.get(name.lower()) == value.lower() for name, value in labels.items())


def number(labels: Mapping[str, str], name: str) -> int | None:
    """Return a label that holds a whole number; None where it is absent or something else."""
    text = labels.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 10 else None


def models_allowed(spec: Item) -> str | None:
    """Return the GPU models a pod's node selector and required node affinity leave, joined by '|'; None for any.

    Selector terms are alternatives, expressions within a term all hold. Only operator In names models.
    """
    allowed: set[str] | None = None
    selector = spec.child("nodeSelector")
    for key in GPU_MODEL:
        if model := selector.text(key):
            allowed = {plain_model(model)}
    required = spec.child("affinity").child("nodeAffinity").child("requiredDuringSchedulingIgnoredDuringExecution")
    terms = [_models_of_term(term) for term in required.children("nodeSelectorTerms")]
    if terms and all(term is not None for term in terms):
        either = set().union(*(term for term in terms if term is not None))
        allowed = either if allowed is None else allowed & either
    return "|".join(sorted(allowed)) or None if allowed is not None else None


def _models_of_term(term: Item) -> set[str] | None:
    models: set[str] | None = None
    for expression in term.children("matchExpressions"):
        if expression.text("key") in GPU_MODEL and expression.text("operator") == "In":
            values = {plain_model(value) for value in expression.texts("values")}
            models = values if models is None else models & values
    return models
