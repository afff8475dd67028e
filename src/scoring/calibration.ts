/** A calibration moves margins so that stated probabilities match how often answers are right: `d / temperature + bias`. */

export interface Calibration {
  readonly temperature: number
  readonly bias: number
}

export const uncalibrated: Calibration = { temperature: 1, bias: 0 }

export function calibrateMargins(margins: Float64Array, { temperature, bias }: Calibration): Float64Array {
  return margins.map((margin) => margin / temperature + bias)
}
