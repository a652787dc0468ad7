"""How many nodes of which type: rules for node pools like the Cluster Autoscaler's and Karpenter's."""
