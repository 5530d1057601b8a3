/** The lines of one metric. */
type Family = { header: string[]; samples: string[] }

const FAMILY = /^# (?:HELP|TYPE) (\S+)/
const SAMPLE = /^(\w+)(\{)?/

/**
 * Merges the metrics of several processes, in the text format of Prometheus, which requires that all samples of a
 * metric follow each other. Each sample gets the label `process` with the key of its text.
 */
export function mergeMetrics(texts: ReadonlyMap<number, string>): string {
  const families = new Map<string, Family>()
  for (const [number, text] of texts) {
    let family: Family = { header: [], samples: [] }
    for (const line of text.split('\n')) {
      const name = FAMILY.exec(line)?.[1]
      if (name !== undefined) {
        family = families.get(name) ?? { header: [], samples: [] }
        families.set(name, family)
        if (!family.header.includes(line)) family.header.push(line)
      } else if (line !== '') {
        family.samples.push(labeled(line, number))
      }
    }
  }
  const lines = [...families.values()].flatMap(({ header, samples }) => [...header, ...samples])
  return `${lines.join('\n')}\n`
}

/** Puts the label first, so that the values of the other labels needn't be parsed. */
function labeled(sample: string, number: number): string {
  return sample.replace(SAMPLE, (_, name: string, brace: string | undefined) =>
    brace === undefined ? `${name}{process="${number}"}` : `${name}{process="${number}",`,
  )
}
