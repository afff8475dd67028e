/** Calibration on request: a header names an entry of the configuration, and its temperature and bias move the margins. */
import type { RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type Calibration, calibrateMargins } from "../scoring/calibration.ts"

const header = "x-umpire-calibration"

export type Calibrations = Readonly<Record<string, Calibration>>

/** The calibration that the request names; null leaves the model's own probabilities, as the contract says. */
export function readCalibration(request: RequestFacts, calibrations: Calibrations): Calibration | null {
  const name = request.header(header)
  if (name === null) return null
  const found = Object.hasOwn(calibrations, name) ? calibrations[name] : undefined
  if (!found)
    throw new Fault(
      "invalid_request",
      `Cannot calibrate: ${header} names no entry of calibrations in the configuration`,
      { param: header },
    )
  return found
}

export function calibrated(margins: Float64Array, calibration: Calibration | null): Float64Array {
  return calibration ? calibrateMargins(margins, calibration) : margins
}
