import { expect, test } from "vitest"
import { type Recognizer, recognizers } from "../../contract/guardrails/guardrails.ts"
import { isCardNumber, isIban, isMod11And10, isVerhoeff } from "./national-ids.ts"
import { blank, recognize, replaceSpans } from "./recognizers.ts"

const found = (text: string, names: readonly Recognizer[] = recognizers): string[] =>
  recognize(text, names).map(({ start, end }) => text.slice(start, end))

const privateKey = `-----BEGIN OPENSSH PRIVATE KEY-----\n${"b3BlbnNzaC1rZXktdjEA\n".repeat(80)}-----END OPENSSH PRIVATE KEY-----`

test.each<[Recognizer, string, string]>([
  ["email", "Write to maria.lopez+x@example.co.uk.", "maria.lopez+x@example.co.uk"],
  ["email", "hana@bücher.example, please", "hana@bücher.example"],
  [
    "email",
    "mail: kofi (dot) mensah (at) example (dot) net today",
    "kofi (dot) mensah (at) example (dot) net",
  ],
  ["email", "an josé@example.com.", "josé@example.com"],
  ["email", "to ma\u{200b}ria\u{200d}@exam\u{ad}ple.com.", "ma\u{200b}ria\u{200d}@exam\u{ad}ple.com"],
  ["email", "to ｍａｒｉａ＠ｅｘａｍｐｌｅ．ｃｏｍ.", "ｍａｒｉａ＠ｅｘａｍｐｌｅ．ｃｏｍ"],
  ["email", "Mail: jörg.müller@example.com, danke", "jörg.müller@example.com"],
  ["email", "jörg (at) example (dot) com", "jörg (at) example (dot) com"],
  ["phone", "Call +44 7700 900123.", "+44 7700 900123"],
  ["phone", "Call +44\u{a0}7700\u{202f}900123.", "+44\u{a0}7700\u{202f}900123"],
  ["phone", "Text 312\u{2011}555\u{2010}0188.", "312\u{2011}555\u{2010}0188"],
  ["phone", "on (415) 555-0134, Dana", "(415) 555-0134"],
  ["phone", "Text 312-555-0188.", "312-555-0188"],
  ["phone", "Tel. 030 1234567, abends", "030 1234567"],
  ["iban", "To DE44 5001 0517 5407 3249 31 please", "DE44 5001 0517 5407 3249 31"],
  ["iban", "Pay DE44500105175407324931 BIC DEUTDEFF", "DE44500105175407324931"],
  ["iban", "IBAN DE44 5001 0517 5407 3249 31 BIC COBADEFFXXX", "DE44 5001 0517 5407 3249 31"],
  [
    "iban",
    "DE44\u{a0}5001\u{202f}0517\u{a0}5407\u{a0}3249\u{a0}31",
    "DE44\u{a0}5001\u{202f}0517\u{a0}5407\u{a0}3249\u{a0}31",
  ],
  ["iban", "iban:NL91ABNA0417164300", "NL91ABNA0417164300"],
  ["card", "card 4532 0194 5807 3029, 04/27", "4532 0194 5807 3029"],
  ["card", "card 4532 0194 5807 3029 04/27", "4532 0194 5807 3029"],
  ["card", "card 4532019458073029 04/27 123", "4532019458073029"],
  ["card", "Visa 2 4532 0194 5807 3029", "4532 0194 5807 3029"],
  ["card", "4532\u{2011}0194\u{2010}5807\u{a0}3029", "4532\u{2011}0194\u{2010}5807\u{a0}3029"],
  ["card", "amex 371449630364263 exp", "371449630364263"],
  ["card", "\u{feff}card 4532\u{2060}0194\u{200b}58073029\u{200b} x", "4532\u{2060}0194\u{200b}58073029"],
  ["card", "card ４５３２　０１９４　５８０７　３０２９ x", "４５３２　０１９４　５８０７　３０２９"],
  ["national_id", "number 536-22-8145.", "536-22-8145"],
  ["national_id", "is AB 12 34 56 C.", "AB 12 34 56 C"],
  ["national_id", "NHS number 943 476 5919", "943 476 5919"],
  ["national_id", "DNI 29555779C, baja", "29555779C"],
  ["national_id", "NIE X1234567L", "X1234567L"],
  ["national_id", "RSSMRA85L22H501J, grazie", "RSSMRA85L22H501J"],
  ["national_id", "sécu : 1 85 05 78 006 084 91", "1 85 05 78 006 084 91"],
  ["national_id", "CPF 529.982.247-25", "529.982.247-25"],
  ["national_id", "it is 110105198507223211.", "110105198507223211"],
  ["national_id", "är 850722-3215", "850722-3215"],
  ["national_id", "220785-123R", "220785-123R"],
  ["national_id", "85.07.22-123.81, mutuelle", "85.07.22-123.81"],
  ["national_id", "My BSN is 111222333.", "111222333"],
  ["national_id", "SIN 723-456-786", "723-456-786"],
  ["national_id", "Steuer-ID lautet 86 095 742 719", "86 095 742 719"],
  ["national_id", "PESEL 85072212346", "85072212346"],
  ["national_id", "Aadhaar 2345 6789 0124", "2345 6789 0124"],
  ["ip_address", "from 81.2.69.142, at home", "81.2.69.142"],
  ["ip_address", "2a02:8109:9c40:1af8:7d3c:5a11:be0e:1c2f", "2a02:8109:9c40:1af8:7d3c:5a11:be0e:1c2f"],
  ["ip_address", "It is 2a02:8109::1c2f.", "2a02:8109::1c2f"],
  ["secret", "at https://lena:Tr0ub@git.example.com/a", "https://lena:Tr0ub@git.example.com"],
  ["secret", "key sk-proj-9aXb27Qm41LrTz80VnKc63YwPd.", "sk-proj-9aXb27Qm41LrTz80VnKc63YwPd"],
  ["secret", "AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"],
  ["secret", `Mine: ${privateKey} Keep it.`, privateKey],
  ["secret", `Cut off: ${privateKey.slice(0, 900)}`, privateKey.slice(0, 900)],
])("%s is found in %j", (name, text, passage) => {
  expect(found(text, [name])).toEqual([passage])
  // Cut out of a longer word it is something else.
  const inWord = `x${passage}x`.replaceAll(/\s/g, "")
  expect(found(inWord, [name])).not.toContain(passage.replaceAll(/\s/g, ""))
})

test.each([
  "The IBAN DE45 5001 0517 5407 3249 31 has a digit wrong.",
  "Order 4921-7735-0088-1142 has not been shipped.",
  "The number 4532 0194 5807 3028 is no card.",
  "29555779D and RSSMRA85L22H501K and 529.982.247-26",
  "My BSN is 111222334, PESEL 85072212347, SIN 723-456-787.",
  "The serial is 111222333.",
  "Version 10.4.22.1 and version 81.2.69.142 of the plugin; 127.0.0.1, 192.168.1.20 and 10.0.0.1/8; ::1",
  "At 10:25:30 on 12.08.2024, 31/03/2025 or 2025-03-31",
  "from 12,345,678 to 13,102,544",
  "ISBN 978-3-16-148410-0, part number 0151 2345 6789-B",
  "user@localhost, a @ b, @handle, foo@bar",
  "postgres://HOST:5432/name and https://example.com/a:b@c",
  "Call me at 5.",
  "sk-short and eyJ.eyJ.x",
])("nothing is found in %j", (text) => {
  expect(found(text)).toEqual([])
})

/** The text with each digit in turn one higher. */
const changed = (text: string): string[] =>
  Array.from(text.matchAll(/\d/g), ({ 0: digit, index }) => {
    const other = String((Number(digit) + 1) % 10)
    return text.slice(0, index) + other + text.slice(index + 1)
  })

test("one wrong digit anywhere is found out", () => {
  for (const iban of changed("DE44500105175407324931")) expect(isIban(iban), iban).toBe(false)
  for (const card of changed("4532019458073029")) expect(isCardNumber(card), card).toBe(false)
  for (const id of changed("86095742719")) expect(isMod11And10(id), id).toBe(false)
  for (const id of changed("234567890124")) expect(isVerhoeff(id), id).toBe(false)
})

test("passages that overlap are one, and blanks keep every position", () => {
  const text = "Mail ann@example.org, or +44 7700 900123!"
  const spans = recognize(text, recognizers)
  expect(replaceSpans(text, spans, () => "#")).toBe("Mail #, or #!")
  expect(blank(text, spans)).toBe("Mail                , or                !")
  expect(
    replaceSpans(
      "abcdef",
      [
        { start: 2, end: 5 },
        { start: 1, end: 3 },
      ],
      () => "#",
    ),
  ).toBe("a#f")
})
