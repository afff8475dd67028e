import { createHash } from "node:crypto"
import { expect, test } from "vitest"
import { type QrCode, qrCode } from "./qr-code.ts"

const linesOf = (code: QrCode | null): string[] =>
  (code ?? []).map((line) => line.map((dark) => (dark ? "█" : " ")).join(""))
const hashOf = (code: QrCode | null): string =>
  createHash("sha256")
    .update(linesOf(code).join("\n").replaceAll("█", "1").replaceAll(" ", "0"))
    .digest("hex")
    .slice(0, 16)

/** As the library qrcode of Python draws them with the same mask, and zbar reads them. */
test("a text is drawn as the standard says, module by module", () => {
  expect(linesOf(qrCode("hello"))).toEqual([
    "███████  ██   ███████",
    "█     █ ██    █     █",
    "█ ███ █  █ ██ █ ███ █",
    "█ ███ █   ██  █ ███ █",
    "█ ███ █ ██  █ █ ███ █",
    "█     █     █ █     █",
    "███████ █ █ █ ███████",
    "          ███        ",
    "█ █ █ █  █ █    █  █ ",
    "  █ ██    █   █    ██",
    " █ █  █ ███ █   █████",
    "██  █         █    █ ",
    " ██ █ ██  █ █ █ █    ",
    "        ████ █ █  ███",
    "███████   ██ ███  ███",
    "█     █   ████ ██    ",
    "█ ███ █ █ ██ ███   ██",
    "█ ███ █  █    ██  ██ ",
    "█ ███ █ ███ █   █ █ █",
    "█     █  █    █ █  █ ",
    "███████ ███ █ ██   ██",
  ])
})

test.each([
  [
    "of four blocks",
    "otpauth://totp/Umpire:ada%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Umpire",
    "ea3c50b3d7fa5bfc",
  ],
  ["of blocks of two lengths, with its version", "x".repeat(214), "91933294d958c68c"],
])("a larger one %s is too", (_, text, hash) => {
  expect(hashOf(qrCode(text))).toBe(hash)
})

test.each([14, 26, 42, 62, 84, 106, 122, 152, 180, 213, 251, 287, 331])(
  "%i bytes fill a version, and one more needs the next",
  (bytes) => {
    const next = qrCode("x".repeat(bytes + 1))
    expect(next?.length ?? null).toBe(bytes === 331 ? null : (qrCode("x".repeat(bytes))?.length ?? 0) + 4)
  },
)
