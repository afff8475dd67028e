import { expect, test } from "vitest"
import { browserCommand } from "./welcome.ts"

test.each([
  ["linux", {}, undefined],
  ["linux", { DISPLAY: ":0" }, ["xdg-open"]],
  ["linux", { WAYLAND_DISPLAY: "wayland-0" }, ["xdg-open"]],
  ["linux", { BROWSER: "firefox" }, ["firefox"]],
  ["linux", { DISPLAY: ":0", SSH_CONNECTION: "192.0.2.1 1 192.0.2.2 22" }, undefined],
  ["darwin", {}, ["open"]],
  ["darwin", { SSH_CONNECTION: "192.0.2.1 1 192.0.2.2 22" }, undefined],
  ["win32", {}, ["cmd", "/c", "start", ""]],
] as const)("on %s with %o the browser is opened by %o", (platform, environment, command) => {
  expect(browserCommand(platform, environment)).toEqual(command)
})
