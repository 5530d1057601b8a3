import { Annals } from '@annals/sdk'

const { ANNALS_API_URL = '', ANNALS_API_KEY = '' } = process.env

export const annals = new Annals({ apiKey: ANNALS_API_KEY, baseUrl: ANNALS_API_URL })
export const recorder = annals.recorder({ onRefused: console.error, onError: console.error })
