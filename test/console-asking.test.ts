/** Asking in a browser: the playground, chat, batches and evaluations, with every write and errors in words. */
import { batchTests } from "./console-batches.ts"
import { codeTests } from "./console-code.ts"
import { evaluationTests } from "./console-evaluations.ts"
import { useScene } from "./console-scene.ts"
import { tryingTests } from "./console-trying.ts"
import { writingTests } from "./console-writing.ts"

const scene = useScene()

tryingTests(scene)
batchTests(scene)
evaluationTests(scene)
writingTests(scene)
codeTests(scene)
