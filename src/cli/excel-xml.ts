/** Reads the XML of an Excel file as a stream: strict, bounded, and without a document type, so without entities of its own. */
import sax from "sax"
import { UsageError } from "./command.ts"
import { unreadable } from "./excel-archive.ts"

/** Names are without their prefix. */
export interface XmlHandlers {
  readonly open: (name: string, attributes: ReadonlyMap<string, string>) => void
  readonly text?: (text: string) => void
  readonly close?: (name: string) => void
}

const depthMax = 64
const attributesMax = 256

export async function readXml(pieces: AsyncIterable<string>, handlers: XmlHandlers): Promise<void> {
  const parser = new XmlParser(handlers)
  for await (const piece of pieces) parser.write(piece)
  parser.close()
}

/** Calls the handlers while it is written to. A text may come in several pieces. */
export class XmlParser {
  readonly #parser: sax.SAXParser

  constructor({ open, text, close }: XmlHandlers) {
    // Entities are the five of XML and numbers. By the position the parser knows when a name or a value passes 64 KiB.
    const options = { position: true, strictEntities: true }
    let depth = 0
    let attributes = new Map<string, string>()
    const addText = (piece: string): void => text?.(piece)
    this.#parser = Object.assign(new sax.SAXParser(true, options), {
      onerror: (error) => {
        throw error
      },
      ondoctype: () => {
        throw unreadable("its XML declares a document type, which is not accepted")
      },
      onattribute: ({ name, value }) => {
        if (attributes.size >= attributesMax)
          throw unreadable(`an element of its XML has more than ${attributesMax} attributes`)
        attributes.set(name.startsWith("xmlns") ? name : localName(name), value)
      },
      onopentag: ({ name }) => {
        if (++depth > depthMax) throw unreadable(`its XML is nested more than ${depthMax} deep`)
        open(localName(name), attributes)
        attributes = new Map()
      },
      onclosetag: (name) => {
        depth--
        close?.(localName(name))
      },
      ontext: addText,
      oncdata: addText,
    } satisfies Partial<sax.SAXParser>)
  }

  write(piece: string): void {
    parse(() => this.#parser.write(piece))
  }

  close(): void {
    parse(() => this.#parser.close())
  }
}

function parse(step: () => void): void {
  try {
    step()
  } catch (error) {
    if (error instanceof UsageError) throw error
    const [reason = ""] = String(error instanceof Error ? error.message : error).split("\n")
    throw unreadable(`its XML is broken: ${reason}`)
  }
}

const localName = (name: string): string => name.slice(name.indexOf(":") + 1)
