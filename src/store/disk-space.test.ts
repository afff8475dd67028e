import { expect, test } from "vitest"
import { DiskSpace } from "./disk-space.ts"

function diskOf(read: () => number | null): { disk: DiskSpace; time: { ms: number } } {
  const time = { ms: 0 }
  const clock = { nowMs: () => time.ms, monotonicMs: () => time.ms }
  return { disk: new DiskSpace({ directory: "/x", reservedBytes: 400 }, clock, read), time }
}

test("everything but the reserve can be claimed, and not a byte more", () => {
  const { disk } = diskOf(() => 1000)
  expect(disk.claim(601)).toBe(false)
  expect(disk.claim(600)).toBe(true)
  expect(disk.claim(0)).toBe(true)
  expect(disk.claim(1)).toBe(false)
})

test("the system is asked again after a second, not before", () => {
  let free = 1000
  const { disk, time } = diskOf(() => free)
  expect(disk.claim(600)).toBe(true)
  free = 5000
  time.ms = 999
  expect(disk.claim(1)).toBe(false)
  time.ms = 1_000
  expect(disk.claim(4600)).toBe(true)
})

test("a disk that cannot be asked has room", () => {
  expect(diskOf(() => null).disk.claim(1e12)).toBe(true)
})

test("the disk of a folder is asked", () => {
  const clock = { nowMs: () => 0, monotonicMs: () => 0 }
  const disk = new DiskSpace({ directory: import.meta.dirname, reservedBytes: 0 }, clock)
  expect(disk.freeBytes).toBeGreaterThan(0)
})
