/**
 * A self-signed certificate for `localhost` and 127.0.0.1, valid from 2020 to 2120, and its key. They
 * protect nothing: the key is public, and no program trusts the certificate but a test that asks for
 * it (`ca: TLS_CERTIFICATE`).
 */
export const TLS_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBeTCCASCgAwIBAgIUf8KM18BP56aPTca29VzZOoagFaUwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAx
MDAwMDAwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQHirytvQxuX/IraU+mZrwKKa0oLuU5VvG/R/TuD+Yuxm5MmD5N10gl
usFD1QjM2ZKxWFatEiq5R0+zRr37+74ao04wTDAaBgNVHREEEzARgglsb2NhbGhv
c3SHBH8AAAEwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQUQ6tzoybhxGkf9LQU
TwlQrqamgyEwCgYIKoZIzj0EAwIDRwAwRAIgM7Q3kdOb/szxdGraFAPK03doF5if
96APGQB0j/RnNzMCIBHsxUIwAOIxQzXSPJDN8KGmZ800XFSySUq5JVMQUTFp
-----END CERTIFICATE-----
`

export const TLS_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgt/7Mn4oXd2dQv3cl
pKMn46ROyPVn2yb6d4VJYsN8NpmhRANCAAQHirytvQxuX/IraU+mZrwKKa0oLuU5
VvG/R/TuD+Yuxm5MmD5N10glusFD1QjM2ZKxWFatEiq5R0+zRr37+74a
-----END PRIVATE KEY-----
`
