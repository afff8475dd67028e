/** Writes fields of ONNX's protobuf, for files that say something else about themselves. */

/** A field of bytes. */
export const onnxField = (number: number, content: Buffer): Buffer =>
  Buffer.concat([Buffer.of(number * 8 + 2, ...varint(content.length)), content])

const varint = (value: number): number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)]

/** One of the `metadata_props`. Of two with the same key the later counts. */
export const onnxProperty = (key: string, value: string): Buffer =>
  onnxField(14, Buffer.concat([onnxField(1, Buffer.from(key)), onnxField(2, Buffer.from(value))]))
