import { checkReply, pause, type SoakContext } from './soak-context.ts'

const EVERY_MS = 2_000

/** Polls health, readiness and metrics, as monitoring would. */
export async function scrape(soak: SoakContext): Promise<void> {
  while (!soak.stopping.aborted) {
    checkReply(soak, 'health', await soak.http.send('GET', '/health'), [200])
    checkReply(soak, 'ready', await soak.http.send('GET', '/ready'), [200, 503])
    const metrics = await fetch(`${soak.service.metricsUrl}/metrics`).catch(() => null)
    await metrics?.text().catch(() => '')
    soak.tally.count('metrics', metrics ? String(metrics.status) : 'broken')
    const isScraped = metrics === null || metrics.status === 200
    soak.verdicts.check('responses', isScraped, () => `metrics: ${metrics?.status}`)
    await pause(soak, EVERY_MS)
  }
}
