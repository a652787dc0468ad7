"""Placement that keeps GPU boxes free for GPU jobs."""

from gputwin.simulation.policy import placement


@placement("coldest", "CPU jobs to nodes with fewest GPUs, GPU jobs to the node with most free GPUs")
def score(machines, requests, r, n, knobs):
    node = machines.nodes[n]
    if requests[r].gpu_count == 0:
        return -float(node.gpu_count)
    return float(node.gpu_free)
