import { load } from "./umpire/umpire.js"

const questions = [
  { type: "predicate", name: "refund", instructions: "Does the customer ask for a refund?" },
  {
    type: "choice",
    name: "topic",
    instructions: "What is the complaint about?",
    choices: [{ value: "delivery" }, { value: "billing" }],
  },
]

const [text, button, status, shown] = ["text", "decide", "status", "answers"].map((id) =>
  document.getElementById(id),
)

async function decide(umpire) {
  try {
    const started = performance.now()
    const { answers } = await umpire.decide({ input: text.value, questions })
    shown.textContent = JSON.stringify(answers, null, 2)
    status.textContent = `Answered in ${Math.round(performance.now() - started)} ms.`
  } catch (error) {
    status.textContent = error.message
  }
}

try {
  const umpire = await load()
  status.textContent = "Ready."
  button.disabled = false
  button.addEventListener("click", () => void decide(umpire))
} catch (error) {
  status.textContent = error.message
}
