/** The type of a schema as it came: an object of JSON. */
export type JsonObject = Readonly<Record<string, unknown>>
