/**
 * English, as all our words are, with dates in the order that is usual where the browser's language is
 * spoken. Years are those of the log, also where another calendar is usual.
 */
export const LANGUAGE = languageOf(navigator.language)

function languageOf(tag: string): string {
  try {
    return `en-${new Intl.Locale(tag).maximize().region}-u-ca-gregory`
  } catch {
    // Some systems name a language in a way that is none.
    return 'en'
  }
}
