/** Values of the chart that turn everything on. */
export const allOfChart = {
  image: { pullSecrets: [{ name: "registry" }] },
  database: { directSecret: "direct" },
  clickhouse: { secret: "events" },
  content: { secret: "content" },
  bootstrap: { secret: "first" },
  config: { models: [{ sku: "a", context_tokens_max: 10 }] },
  env: [{ name: "UMPIRE_LOG_LEVEL", value: "debug" }],
  gateway: {
    journal: { storageClass: "fast" },
    nodeSelector: { disk: "ssd" },
    tolerations: [{ key: "a" }],
    podAnnotations: { a: "b" },
    extraVolumes: [{ name: "authorities", secret: { secretName: "authorities" } }],
    extraVolumeMounts: [{ name: "authorities", mountPath: "/authorities", readOnly: true }],
  },
  worker: { enabled: true, podAnnotations: { a: "b" } },
  autoscaling: { enabled: true },
  serviceMonitor: { enabled: true },
  metrics: { secret: "readers" },
  ingress: { enabled: true, tlsSecret: "tls", annotations: { a: "b" } },
  networkPolicy: { enabled: true, metricsFrom: [{ podSelector: {} }] },
}
