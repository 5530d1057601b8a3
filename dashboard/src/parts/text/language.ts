/**
 * English, like all our text, with the date order of the browser's region. The calendar is always
 * Gregorian, as in the events.
 */
export const LANGUAGE = languageOf(navigator.language)

function languageOf(tag: string): string {
  try {
    return `en-${new Intl.Locale(tag).maximize().region}-u-ca-gregory`
  } catch {
    // Some systems report an invalid language tag.
    return 'en'
  }
}
