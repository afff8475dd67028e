import { execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { systemdUnit } from "./service.ts"

const settings = {
  command: [process.execPath, "/opt/it's here/umpire.js", "serve"],
  dataDirectory: "/var/lib/umpire",
  environmentFile: "/etc/umpire/environment",
}
const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0

test("percent signs, dollars and quotes of a path are not read by systemd", () => {
  const unit = systemdUnit({ ...settings, command: ['/a b/50%/$HOME/"x"'], user: null })
  expect(unit).toContain(String.raw`ExecStart="/a b/50%%/$$HOME/\"x\""`)
})

test("a data directory with spaces is one setting", () => {
  const unit = systemdUnit({ ...settings, dataDirectory: "/home/a b/50%/$x", user: null })
  expect(unit).toContain('Environment="UMPIRE_DATA_DIR=/home/a b/50%%/$x"')
})

test("a service of a user names no user and waits for no system target", () => {
  const unit = systemdUnit({ ...settings, user: null })
  expect(unit).not.toMatch(/^User=|multi-user|StateDirectory/m)
  expect(unit).toContain("WantedBy=default.target")
})

test("what fails is started again, and given up where it ends ten times within five minutes", () => {
  const [unit = "", service = ""] = systemdUnit({ ...settings, user: "umpire" }).split("[Service]")
  expect(unit).toContain("StartLimitIntervalSec=300\nStartLimitBurst=10\n")
  expect(service).toContain("Restart=on-failure\nRestartSec=5\n")
})

describe.runIf(hasAnalyze)("systemd", () => {
  const folder = mkdtempSync(join(tmpdir(), "umpire-unit-"))
  const file = join(folder, "umpire.service")

  test("finds nothing wrong with the unit", () => {
    // The program must be there for the check; its arguments need not.
    writeFileSync(file, systemdUnit({ ...settings, user: "root" }))
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" })
    expect([status, stderr.split("\n").filter((line) => line.includes("umpire.service"))]).toEqual([0, []])
  })

  test("calls the unit of the system well protected", () => {
    writeFileSync(file, systemdUnit({ ...settings, user: "umpire" }))
    const report = execFileSync("systemd-analyze", ["security", "--offline=true", file], { encoding: "utf8" })
    const exposure = Number(/exposure level for umpire\.service: ([\d.]+)/i.exec(report)?.[1])
    expect(exposure).toBeLessThan(3)
    expect(readFileSync(file, "utf8")).toContain("ProtectSystem=strict")
  })
})
