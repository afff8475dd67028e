/** The few line icons of the console, drawn on a 20 by 20 grid. */
import type { ReactNode } from "react"

const paths = {
  play: "M6 4.5v11l9-5.5z",
  bolt: "M11 2.5 4.5 11.5h4.6L8.5 17.5l7-9.5h-4.8z",
  check: "m4.5 10.5 3.5 3.5 7.5-8",
  cross: "m5.5 5.5 9 9m0-9-9 9",
  plus: "M10 4.5v11M4.5 10h11",
  key: "M12.8 7.2a3.2 3.2 0 1 1-3 4.3H8.2v2H6.2v2H3.5v-2.7l5.2-5.2a3.2 3.2 0 0 1 4.1 0ZM13.6 8.4v.01",
  people:
    "M7.5 9.5a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4ZM2.5 16c.3-2.8 2.2-4.4 5-4.4s4.7 1.6 5 4.4M13 9.3a2.3 2.3 0 0 0 0-4.6M14.4 11.8c1.8.4 2.9 1.8 3.1 4.2",
  bell: "M5.5 13.5V9a4.5 4.5 0 0 1 9 0v4.5l1.3 1.5H4.2zM8.3 17h3.4",
  chart: "M3.5 16.5h13M5.5 13.5v-3M9 13.5v-7M12.5 13.5V9M16 13.5V4",
  layers: "m10 3.5 7 3.7-7 3.8-7-3.8zM3.5 10.6 10 14l6.5-3.4M3.5 13.6 10 17l6.5-3.4",
  route:
    "M5 6.5a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6ZM15 17.1a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6ZM5 6.5v5a3 3 0 0 0 3 3h5.2M6.8 4.7H12a3 3 0 0 1 3 3v5.8",
  shield: "M10 3 4.5 5v4.4c0 3.6 2.2 6 5.5 7.6 3.3-1.6 5.5-4 5.5-7.6V5z",
  badge:
    "M3 5h14v10.5H3zM7.3 9.9a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM4.8 13.2c.4-1.3 1.3-2 2.5-2s2.1.7 2.5 2M12.3 8.3h2.5M12.3 11.8h2.5",
  card: "M3 5.5h14v9H3zM3 8.5h14M5.5 12h3",
  lock: "M5 9.5h10v7H5zM7 9.5v-3a3 3 0 0 1 6 0v3",
  eye: "M2.5 10s2.7-5 7.5-5 7.5 5 7.5 5-2.7 5-7.5 5-7.5-5-7.5-5ZM10 12.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4Z",
  inbox: "M3.5 4.5h13v11h-13zM3.5 8.2h13M3.5 11.8h13M7 4.5v11",
  bookmark: "M6 3.5h8v13l-4-3-4 3z",
  list: "M7 5.5h10M7 10h10M7 14.5h10M3.5 5.5h.01M3.5 10h.01M3.5 14.5h.01",
  gear: "M10 12.6a2.6 2.6 0 1 0 0-5.2 2.6 2.6 0 0 0 0 5.2ZM10 2.8v2M10 15.2v2M17.2 10h-2M4.8 10h-2M15.1 4.9l-1.4 1.4M6.3 13.7l-1.4 1.4M15.1 15.1l-1.4-1.4M6.3 6.3 4.9 4.9",
  target: "M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 13.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM10 10h.01",
  book: "M10 5.2C8.4 4 6.2 3.7 3.5 3.8v11.4c2.7-.1 4.9.2 6.5 1.4 1.6-1.2 3.8-1.5 6.5-1.4V3.8C13.8 3.7 11.6 4 10 5.2ZM10 5.2v11.4",
  chat: "M3.5 4.5h13v9H9l-3.5 3v-3h-2z",
  stack: "M4 4h12v3.5H4zM4 10h12M4 13h12M4 16h8",
  cards: "M4 8h12v8.5H4zM5.5 5.3h9M7 2.8h6",
  copy: "M7.5 7.5h9v9h-9zM12.5 7.5v-4h-9v9h4",
  trash: "M4 6h12M8 6V4h4v2M5.5 6l.7 10.5h7.6L14.5 6M8.4 9v4.5M11.6 9v4.5",
  turn: "M15.5 8A6 6 0 1 0 16 11.5M15.8 3.8V8h-4.2",
  down: "m5.5 8 4.5 4.5L14.5 8",
  up: "m5.5 12 4.5-4.5 4.5 4.5",
  grip: "M7.5 5h.01M12.5 5h.01M7.5 10h.01M12.5 10h.01M7.5 15h.01M12.5 15h.01",
  dots: "M5 10h.01M10 10h.01M15 10h.01",
  menu: "M3.5 6h13M3.5 10h13M3.5 14h13",
  sun: "M10 13.2a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4ZM10 2.5v1.7M10 15.8v1.7M17.5 10h-1.7M4.2 10H2.5M15.3 4.7l-1.2 1.2M5.9 14.1l-1.2 1.2M15.3 15.3l-1.2-1.2M5.9 5.9 4.7 4.7",
  moon: "M16.3 12A6.8 6.8 0 0 1 8 3.7 6.8 6.8 0 1 0 16.3 12Z",
  share: "M10 12.5V3.5M6.5 6.5 10 3l3.5 3.5M5 10.5H4v6h12v-6h-1",
  clock: "M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 6v4.2l2.8 1.7",
  code: "m7 6-4 4 4 4M13 6l4 4-4 4M11.3 4.5l-2.6 11",
  split: "M3.5 4h13v12h-13zM10 4v12",
  search: "M9 14.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM13.2 13.2 17 17",
  out: "M8 4H4v12h4M12.5 6.5 16 10l-3.5 3.5M16 10H8",
  file: "M5 3h6.5L15.5 7v10H5zM11.5 3v4h4",
  warn: "M10 3.5 2.8 16h14.4zM10 8.2v3.6M10 13.9v.01",
  filter: "M3 5h14l-5.5 6.3V16l-3-1.5v-3.2z",
  send: "m3.5 10 13-6-4.5 12.5-2.7-5z",
  stop: "M5.5 5.5h9v9h-9z",
  download: "M10 3.5v9M6.5 9.5 10 13l3.5-3.5M4 14v2.5h12V14",
} as const

export type IconName = keyof typeof paths

export function Icon({ name, className = "size-4" }: { name: IconName; className?: string }): ReactNode {
  const filled = name === "play" || name === "stop"
  return (
    <svg
      viewBox="0 0 20 20"
      className={`shrink-0 ${className}`}
      fill={filled ? "currentColor" : "none"}
      stroke="currentColor"
      strokeWidth={name === "dots" ? 2.6 : name === "grip" || name === "list" ? 2 : 1.6}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  )
}
