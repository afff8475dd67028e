import { describe, expect, it } from "vitest"
import { isForeign } from "../classify.ts"

describe("a language that was not learnt", () => {
  it.each([
    "Die Lieferung ist noch nicht da und ich möchte mein Geld zurück.",
    "Je voudrais un remboursement, la commande est arrivée cassée.",
    "El pedido no llegó y quiero que me devuelvan el dinero.",
    "De bestelling is niet aangekomen en ik wil een terugbetaling van het bedrag.",
    "Заказ не пришёл, верните деньги.",
    "注文した商品がまだ届きません。",
  ])("is found: %s", (text) => {
    expect(isForeign(text)).toBe(true)
  })

  it.each([
    "The parcel never came and I want my money back.",
    "parcel broken, refund pls",
    "",
    "INV-2231 / 44.90 EUR",
    '{"id": 4, "note": "Sofia de la Cruz called from Los Angeles about the order"}',
    "Our hotel in La Rochelle, Le Champlain, was lovely and the staff at the desk were kind.",
    "const total = items.reduce((sum, item) => sum + item.price, 0)",
  ])("is not English: %s", (text) => {
    expect(isForeign(text)).toBe(false)
  })
})
