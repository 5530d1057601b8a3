import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { compressStaticFile, sendStaticFile, type StaticFile } from './static-file.ts'

const VERIFIER = join(import.meta.dirname, '../../../verifier/annals-verify.mjs')

/**
 * GET /annals-verify.mjs: the offline verifier, so that an auditor needs nothing but an address. Read on the
 * first request and cached, because anyone can call this route.
 */
export function serveVerifier(app: FastifyInstance): void {
  let file: Promise<StaticFile> | null = null
  app.get('/annals-verify.mjs', async (request, reply) => {
    file ??= loadVerifier()
    return sendStaticFile(await file, request, reply)
  })
}

async function loadVerifier(): Promise<StaticFile> {
  return await compressStaticFile('text/javascript; charset=utf-8', await readVerifier())
}

export function readVerifier(): Promise<Buffer> {
  return readFile(VERIFIER)
}
