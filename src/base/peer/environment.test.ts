import { expect, test } from "vitest"
import { withoutSecrets } from "./supervisor.ts"

test("a child gets what its runtime reads, and no setting of the gateway", () => {
  const needed = {
    PATH: "/bin",
    LC_ALL: "C",
    NODE_COMPILE_CACHE: "/c",
    CUDA_VISIBLE_DEVICES: "0",
    OMP_NUM_THREADS: "1",
  }
  const secrets = {
    UMPIRE_DATABASE_URL: "postgres://u:secret@h/d",
    UMPIRE_BOOTSTRAP_KEY: "ump_secret",
    AWS_SECRET_ACCESS_KEY: "secret",
    PGPASSWORD: "secret",
    npm_config_token: "secret",
  }
  expect(withoutSecrets({ ...needed, ...secrets })).toEqual(needed)
})
