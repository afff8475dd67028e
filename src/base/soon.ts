/** A value that is there at once, or the promise of it: to wait for what is there costs a turn and several objects. */
export type Soon<Value> = Value | Promise<Value>
