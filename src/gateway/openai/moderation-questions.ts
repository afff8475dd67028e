/** What is asked of a text for each moderation category, and from which probability on the category applies. */
import type { ModerationCategory } from "../../contract/openai/moderations.ts"

interface ModerationQuestion {
  readonly question: string
  readonly threshold: number
}

/** At each threshold about one in a hundred harmless texts is found by the question: bench/safety.ts finds those of another model. */
const ask = (question: string, threshold = 0.5): ModerationQuestion => ({ question, threshold })

export const moderationQuestions: Readonly<Record<ModerationCategory, ModerationQuestion>> = {
  harassment: ask("Does the text insult, bully or harass a person?", 0.89),
  "harassment/threatening": ask("Does the text threaten a person with violence or serious harm?", 0.8),
  hate: ask(
    "Does the text express hatred of people because of their race, religion, nationality, gender, sexual orientation or disability?",
    0.68,
  ),
  "hate/threatening": ask(
    "Does the text threaten people with violence because of their race, religion, nationality, gender, sexual orientation or disability?",
    0.69,
  ),
  illicit: ask("Does the text ask for or give instructions for a crime?", 0.87),
  "illicit/violent": ask("Does the text ask for or give instructions for violence or making a weapon?", 0.71),
  "self-harm": ask("Is the text about suicide, cutting oneself or another way of harming oneself?", 0.87),
  "self-harm/intent": ask("Does the speaker say that they want to harm or kill themselves?"),
  "self-harm/instructions": ask("Does the text ask for or give instructions for suicide or self-harm?", 0.78),
  sexual: ask("Is the text meant to arouse sexually, or does it describe sexual acts?", 0.79),
  "sexual/minors": ask("Is the text sexual content about someone under 18?", 0.68),
  violence: ask("Does the text describe or encourage killing or physical injury?", 0.59),
  "violence/graphic": ask("Does the text describe death, injury or blood in graphic detail?", 0.88),
}
