"""Rules as Kubernetes manifests and back: HPA v2, KEDA, Knative annotations, Karpenter NodePools."""
