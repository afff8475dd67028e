/** Imported by npm before it packs: it compresses at its best, which for half a gigabyte takes 40 s of processor time; the files are the same. */
import zlib from "node:zlib"

const { Gzip } = zlib
zlib.Gzip = function QuickGzip(options) {
  return new Gzip({ ...options, level: 1 })
}
