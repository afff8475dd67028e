/** Reads an encoder's ONNX file, and checks the file of weights beside it, from the disk. */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { open, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { pipeline } from "node:stream/promises"
import {
  type EncoderAbout,
  type EncoderDescription,
  type EncoderFile,
  type ModelSource,
  readEncoder,
  readEncoderAbout,
} from "./model-file.ts"

/** Throws Error with a clear sentence for a file that cannot be used, or whose weights are absent or of another length. */
export const readEncoderFile = async (path: string): Promise<EncoderFile> => await readFrom(path, readEncoder)

/** The same without its tokens, for what lists models. */
export const readEncoderFileAbout = async (path: string): Promise<EncoderAbout> =>
  await readFrom(path, readEncoderAbout)

async function readFrom<Read extends EncoderAbout>(
  path: string,
  reader: (source: ModelSource) => Promise<Read>,
): Promise<Read> {
  const file = await open(path).catch((cause: unknown) => {
    throw new Error(`${path} cannot be opened`, { cause })
  })
  try {
    const { size } = await file.stat()
    const read = async (start: number, length: number): Promise<Uint8Array> => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, start)
      return buffer.subarray(0, bytesRead)
    }
    const encoder = await reader({ name: path, size, read })
    const { weightsFile } = encoder.description
    if (weightsFile) await checkLength(path, weightsFile)
    return encoder
  } finally {
    await file.close()
  }
}

/** Throws Error when the weights beside the file are not those that it was made with. */
export async function checkWeights(path: string, { description }: EncoderFile): Promise<void> {
  const { weightsFile } = description
  if (weightsFile) await checkHash(weightsPath(path, weightsFile), weightsFile.sha256, path)
}

/** Throws Error when the weights are not those that the ONNX file at `path` was made with. */
export async function checkHash(weights: string, sha256: string, path: string): Promise<void> {
  const hash = createHash("sha256")
  await pipeline(createReadStream(weights), hash)
  if (hash.digest("hex") !== sha256) throw new Error(`${weights} is not the file that ${path} was made with`)
}

type WeightsFile = NonNullable<EncoderDescription["weightsFile"]>

const weightsPath = (path: string, { name }: WeightsFile): string => join(dirname(path), name)

async function checkLength(path: string, weights: WeightsFile): Promise<void> {
  const beside = weightsPath(path, weights)
  const found = await stat(beside).catch((cause: unknown) => {
    throw new Error(`${beside}, which ${path} needs, cannot be opened`, { cause })
  })
  if (found.size !== weights.bytes)
    throw new Error(`${beside} has ${found.size} bytes and needs ${weights.bytes}`)
}
