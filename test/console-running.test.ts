/** Running an organization in a browser: keys, members, billing, analytics, alerts and the fleet, with every write and errors in words. */
import { affairsTests } from "./console-affairs.ts"
import { alertTests } from "./console-alerts.ts"
import { fleetTests } from "./console-fleet.ts"
import { peopleTests } from "./console-people.ts"
import { useScene } from "./console-scene.ts"

const scene = useScene()

peopleTests(scene)
affairsTests(scene)
alertTests(scene)
fleetTests(scene)
