export const PASSWORD_LENGTH_MIN = 10
export const PASSWORD_LENGTH_MAX = 200
/** Attackers try passwords like `aaaaaaaaaa` and `abababababab` before any word list. */
const DISTINCT_CHARACTERS_MIN = 4

/** The most common passwords, except those that are too short anyway. */
const COMMON: ReadonlySet<string> = new Set([
  '0123456789',
  '0987654321',
  '1029384756',
  '12345678900',
  '1234567890',
  '12345678910',
  '123456789a',
  '123456789q',
  '1234qwerasdf',
  '1q2w3e4r5t',
  '1q2w3e4r5t6y',
  '1qaz2wsx3edc',
  'a123456789',
  'abc123456789',
  'abcdefghij',
  'abcdefghijkl',
  'admin12345',
  'admin123456',
  'administrator',
  'adminadmin',
  'asdfghjkl1',
  'basketball',
  'changeme123',
  'iloveyou12',
  'iloveyou123',
  'letmein123',
  'letmein1234',
  'p@ssw0rd123',
  'passw0rd123',
  'password01',
  'password10',
  'password11',
  'password12',
  'password123',
  'password1234',
  'password12345',
  'password123456',
  'passwordpassword',
  'princess123',
  'q1w2e3r4t5',
  'q1w2e3r4t5y6',
  'qazwsxedcrfv',
  'qwerty1234',
  'qwerty12345',
  'qwerty123456',
  'qwertyuiop',
  'qwertyuiop123',
  'sunshine123',
  'superman123',
  'trustno1trustno1',
  'welcome123',
  'welcome1234',
  'zxcvbnm123',
])

/** Returns what is wrong with a new password, worded to follow the field's name, or null if it is fine. */
export function passwordFault(password: string, { email }: { email: string }): string | null {
  const characters = Array.from(password.normalize('NFKC'))
  if (characters.length < PASSWORD_LENGTH_MIN) {
    return `must have at least ${PASSWORD_LENGTH_MIN} characters`
  }
  if (characters.length > PASSWORD_LENGTH_MAX) {
    return `must not have more than ${PASSWORD_LENGTH_MAX} characters`
  }
  const lower = characters.join('').toLowerCase()
  if (lower === email.toLowerCase() || lower === email.toLowerCase().split('@', 1)[0]) {
    return 'must not be the email address'
  }
  if (COMMON.has(lower)) return 'is one of the most common passwords'
  if (new Set(characters).size < DISTINCT_CHARACTERS_MIN) return 'has too few different characters'
  return null
}
