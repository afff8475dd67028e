/** The systemd unit of the server: restarted when it fails, and kept from everything that it does not need. */

interface UnitSettings {
  /** The program and its arguments. */
  readonly command: readonly string[]
  readonly dataDirectory: string
  /** Holds UMPIRE_* settings; may be absent. */
  readonly environmentFile: string
  /** A unit of the system runs as a user of its own; one of a user already does. */
  readonly user: string | null
}

export function systemdUnit({ command, dataDirectory, environmentFile, user }: UnitSettings): string {
  return [
    "[Unit]",
    "Description=Umpire: typed decisions and inference",
    ...(user === null
      ? []
      : ["After=network-online.target postgresql.service", "Wants=network-online.target"]),
    // It waits for its database by itself; what ends at once again and again is given up, and shown as failed.
    "StartLimitIntervalSec=300",
    "StartLimitBurst=10",
    "",
    "[Service]",
    `ExecStart=${command.map(quoted).join(" ")}`,
    `Environment=${escaped(`UMPIRE_DATA_DIR=${dataDirectory}`)}`,
    `EnvironmentFile=-${environmentFile.replaceAll("%", "%%")}`,
    ...(user === null
      ? []
      : [`User=${user}`, `Group=${user}`, "StateDirectory=umpire", "StateDirectoryMode=0700"]),
    "Restart=on-failure",
    "RestartSec=5",
    // SIGTERM drains within 30 s; only the server is told, which ends its engines itself.
    "KillMode=mixed",
    "TimeoutStopSec=35",
    "LimitNOFILE=65536",
    "UMask=0077",
    ...(user === null ? userHardening : [...userHardening, ...systemHardening]),
    "",
    "[Install]",
    `WantedBy=${user === null ? "default.target" : "multi-user.target"}`,
    "",
  ].join("\n")
}

/** JavaScript is compiled at run time, so memory may be written and then executed: no MemoryDenyWriteExecute. */
const userHardening = [
  "NoNewPrivileges=yes",
  "RestrictSUIDSGID=yes",
  "LockPersonality=yes",
  "RestrictRealtime=yes",
]

const systemHardening = [
  "ProtectSystem=strict",
  "ProtectHome=yes",
  "PrivateTmp=yes",
  "PrivateMounts=yes",
  "ProtectHostname=yes",
  "ProtectClock=yes",
  "ProtectKernelTunables=yes",
  "ProtectKernelModules=yes",
  "ProtectKernelLogs=yes",
  "ProtectControlGroups=yes",
  "ProtectProc=invisible",
  "RestrictNamespaces=yes",
  "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
  "CapabilityBoundingSet=",
  "AmbientCapabilities=",
  "RemoveIPC=yes",
  "SystemCallArchitectures=native",
  "SystemCallFilter=@system-service",
  "SystemCallFilter=~@privileged",
  // The analytics process lowers its own priority.
  "SystemCallFilter=setpriority sched_setaffinity sched_setscheduler",
]

/** systemd splits at spaces and expands percent signs, and in commands also variables. */
const quoted = (word: string): string => escaped(word.replaceAll("$", "$$$$"))

const escaped = (word: string): string =>
  `"${word.replaceAll("%", "%%").replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`
