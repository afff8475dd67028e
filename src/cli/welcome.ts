/** What a person needs to begin: the key, the link to the console, and a request to paste. */

export interface Welcome {
  readonly url: string
  readonly modelSku: string
  readonly keyValue: string
  /** The whole address that signs in once; null where there is none to show. */
  readonly consoleUrl: string | null
}

export function drawWelcome({ url, modelSku, keyValue, consoleUrl }: Welcome): string {
  const body = {
    model: modelSku,
    input: "The parcel arrived two weeks late and the box was crushed. I want my money back.",
    questions: [
      { type: "predicate", name: "refund", instructions: "Does the customer ask for a refund?" },
      {
        type: "choice",
        name: "topic",
        instructions: "What is the complaint about?",
        choices: [{ value: "delivery" }, { value: "billing" }, { value: "password" }],
      },
    ],
  }
  return [
    "Your API key (shown only now; umpire keys first makes another):",
    "",
    `  ${keyValue}`,
    "",
    ...(consoleUrl === null ? [] : ["The console (this link signs you in once):", "", `  ${consoleUrl}`, ""]),
    "Try it:",
    "",
    `curl -s ${url}/v1/decisions \\`,
    `  -H 'Authorization: Bearer ${keyValue}' \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '${JSON.stringify(body)}'`,
    "",
    "",
  ].join("\n")
}
