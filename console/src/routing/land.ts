/** The outline of the land as one SVG path, in degrees: longitude to the right, latitude down from 84 north. */
import world from "world-atlas/land-110m.json"

export const mapWidth = 360
export const mapHeight = 142
const northEdge = 84

export const toMap = (longitude: number, latitude: number): readonly [number, number] => [
  longitude + 180,
  northEdge - latitude,
]

type Point = readonly [number, number]
type Arc = readonly Point[]

/** TopoJSON: arcs are quantized differences; a negative index means the arc backwards. */
export function landPath(): string {
  // TypeScript reads pairs in JSON as lists of any length.
  const { scale, translate } = world.transform as unknown as { scale: Point; translate: Point }
  const arcs = (world.arcs as unknown as Arc[]).map((arc) => decode(arc, scale, translate))
  // The file holds one collection of polygons, each a list of rings of arcs.
  const { geometries } = world.objects.land as unknown as { geometries: { arcs: number[][][] }[] }
  return geometries
    .flatMap(({ arcs: polygons }) => polygons.flat())
    .map((ring) =>
      draw(ring.flatMap((index) => (index < 0 ? (arcs[~index] ?? []).toReversed() : (arcs[index] ?? [])))),
    )
    .join("")
}

function decode(arc: Arc, scale: Point, translate: Point): Arc {
  let x = 0
  let y = 0
  return arc.map(([dx, dy]) => {
    x += dx
    y += dy
    return [x * scale[0] + translate[0], y * scale[1] + translate[1]]
  })
}

/** Where the outline goes around the back of the map, it is lifted and set down again. */
function draw(points: Arc): string {
  let before: number | null = null
  const parts = points.map(([longitude, latitude]) => {
    const lifted: boolean = before === null || Math.abs(longitude - before) > 180
    before = longitude
    const [x, y] = toMap(longitude, latitude)
    return `${lifted ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`
  })
  return parts.length === 0 ? "" : `${parts.join("")}Z`
}
