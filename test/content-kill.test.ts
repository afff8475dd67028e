/** What a kill and a full disk do to kept content: nothing that was promised is lost, and what is dropped is counted. */
import { expect, test } from "vitest"
import { countDropped, decide, killWhileKeeping, storedEvidence, withContentKept } from "./content-kill.ts"
import { TestGateway } from "./gateways.ts"

test("kill -9 at 4 random moments under load: the content of every acknowledged answer is stored, redacted", async () => {
  await killWhileKeeping(4)
})

test("no room for content: decisions go on, and what is not kept is counted", async () => {
  await withContentKept(async (scene) => {
    // One file of content is full after some twenty records of this size; usage takes a fraction of it.
    const small = await TestGateway.start({ ...scene.options, fileKibMax: 600 })
    const requests = 60
    const seen: number[] = []
    for (let at = 0; at < requests; at++)
      seen.push((await decide(small.url, `${at} ${"word ".repeat(4_000)}`))?.status ?? 0)
    expect(seen).toEqual(Array.from({ length: requests }, () => 200))
    await small.end("SIGTERM")
    const [stored, dropped] = [(await storedEvidence(scene)).size, await countDropped(scene)]
    expect(stored).toBeGreaterThan(0)
    expect(dropped).toBeGreaterThan(0)
    expect(stored + dropped).toBe(requests)
  })
})

test("a disk that is nearly full is left to usage: no content is written, and all of it is counted", async () => {
  await withContentKept(async (scene) => {
    const env = { ...scene.options.env, UMPIRE_JOURNAL_DISK_FREE_MIN_MIB: "1073741824" }
    const gateway = await TestGateway.start({ ...scene.options, env })
    expect((await decide(gateway.url, "text"))?.status).toBe(200)
    await gateway.end("SIGTERM")
    expect([(await storedEvidence(scene)).size, await countDropped(scene)]).toEqual([0, 1])
  })
})
