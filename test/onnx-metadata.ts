/** Writes fields of ONNX's protobuf, for files that say something else about themselves. */

/** A field of bytes; lengths below 16,384 take two bytes of varint. */
export function onnxField(number: number, content: Buffer): Buffer {
  const { length } = content
  return Buffer.concat([Buffer.of(number * 8 + 2, (length & 0x7f) | 0x80, length >> 7), content])
}

/** One of the `metadata_props`. Of two with the same key the later counts. */
export const onnxProperty = (key: string, value: string): Buffer =>
  onnxField(14, Buffer.concat([onnxField(1, Buffer.from(key)), onnxField(2, Buffer.from(value))]))
