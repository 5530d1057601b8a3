import { receiveNext } from '@annals/sdk/next'

const { ANNALS_WEBHOOK_SECRET = '' } = process.env

export const POST = receiveNext(ANNALS_WEBHOOK_SECRET, ({ event }) => {
  console.log(`received ${event.action}`)
})
