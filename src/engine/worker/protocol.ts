/** Where an Umpire worker is spoken to: the engine service over HTTP. */

/** Every call is posted here; a GET of the health path says whether the worker serves. */
export const workPath = "/umpire/work"
export const healthPath = "/healthz"
/** It changes when a gateway and a worker would misunderstand each other. */
export const protocolVersion = "4"
