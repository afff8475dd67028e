/** Kinds of value that the configuration has in several sections; the environment gives all of them as text. */
import { z } from "zod"

export const whole = (min: number, max: number) => z.coerce.number().int().min(min).max(max)

export const flag = () => z.stringbool().or(z.boolean())
