import { Annals } from '@annals/sdk'
import { receiveExpress, recordExpress } from '@annals/sdk/express'
import express from 'express'

const { ANNALS_API_URL = '', ANNALS_API_KEY = '', ANNALS_WEBHOOK_SECRET = '' } = process.env

const annals = new Annals({ apiKey: ANNALS_API_KEY, baseUrl: ANNALS_API_URL })
const recorder = annals.recorder({ onRefused: console.error, onError: console.error })
const app = express()

// Before express.json(), because the signature covers the bytes as they arrived.
app.post(
  '/annals',
  receiveExpress(ANNALS_WEBHOOK_SECRET, ({ event }) => console.log(`received ${event.action}`)),
)
app.use(express.json())
app.use(recordExpress(recorder, { actor: ({ headers }) => ({ id: String(headers['x-user']) }) }))

app.post('/invoices/:id/pay', (_request, response) => {
  response.json({ paid: true })
})

const server = app.listen(Number(process.env.PORT ?? 3_000), '127.0.0.1', () => {
  console.log('listening', server.address())
})

process.once('SIGTERM', () => {
  server.close()
  server.closeIdleConnections()
  // Sends what is still queued.
  void recorder.close()
})
