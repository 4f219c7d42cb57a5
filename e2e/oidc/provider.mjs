// A certified OIDC server for tests. The tests start it (e2e/oidc_server.py), talk to it like any issuer on the port
// that it is told, and steer it over a second port that stays open while the first is closed. Ends with its parent.

import { createServer } from "node:http";
import { generateKeyPairSync } from "node:crypto";
import Provider from "oidc-provider";
import { createMemoryAdapter } from "oidc-provider/lib/adapters/memory_adapter.js";

const settings = JSON.parse(process.argv[2]);
const host = settings.host ?? "127.0.0.1";
const issuer = settings.issuer ?? `http://127.0.0.1:${settings.port}`; // in a cluster it has another address outside
const shop = createMemoryAdapter(); // sessions, grants, codes and refresh tokens outlive a change of keys
const agents = new Map(Object.entries(settings.agents ?? {})); // client id -> secret and how it is sent
const claims = new Map(); // of a person or an agent -> what its tokens say besides
const counts = {}; // path -> how often it was asked for
let scripted = []; // answers to give instead of the server's own: {path, status, body, times}
let lifetime = settings.lifetime_s;
let generation = 0;
let provider;
let answer;

const KINDS = {
  RS256: ["rsa", { modulusLength: 2048 }],
  PS256: ["rsa", { modulusLength: 2048 }],
  ES256: ["ec", { namedCurve: "P-256" }],
  ES384: ["ec", { namedCurve: "P-384" }],
};

function newKey(alg) {
  const jwk = generateKeyPairSync(...KINDS[alg]).privateKey.export({ format: "jwk" });
  return { ...jwk, kid: `${settings.realm}-${alg}-${generation}`, alg, use: "sig" };
}

// Identity tokens are always signed with RS256; access tokens as the tests ask.
function newKeys() {
  generation += 1;
  return { keys: [...new Set(["RS256", settings.alg])].map(newKey) };
}

const native = {
  application_type: "native", // any port of a loopback redirect
  token_endpoint_auth_method: "none",
  response_types: ["code"],
};
const publicClients = [
  {
    ...native,
    client_id: "mycelium-cli",
    redirect_uris: ["http://127.0.0.1/callback"],
    grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
  },
  {
    ...native,
    client_id: "mycelium-web",
    redirect_uris: ["http://127.0.0.1/api/auth/callback", "http://localhost/api/auth/callback"],
    post_logout_redirect_uris: ["http://127.0.0.1/", "http://localhost/"],
    grant_types: ["authorization_code", "refresh_token"],
  },
];

function agentClient(id) {
  const [secret, method] = agents.get(id);
  return {
    client_id: id,
    client_secret: secret,
    token_endpoint_auth_method: method,
    redirect_uris: [],
    response_types: [],
    grant_types: ["client_credentials"],
  };
}

// Agents come and go while the server runs, so they are looked up like anything else it stores.
function adapter(model) {
  const kept = shop(model);
  if (model === "Client") kept.find = async (id) => (agents.has(id) ? agentClient(id) : undefined);
  return kept;
}

const resource = (ctx, client, granted) =>
  granted ? granted[0] : `urn:audience:${ctx.oidc.body?.audience ?? ctx.oidc.params?.audience ?? settings.audience}`;

function configuration(keys) {
  return {
    clients: publicClients,
    adapter,
    jwks: keys,
    cookies: { keys: ["only for tests"] },
    extraParams: ["audience"],
    scopes: ["openid", "offline_access", "profile", "email"],
    claims: { openid: ["sub"], profile: ["name", "preferred_username"], email: ["email", "email_verified"] },
    conformIdTokenClaims: false,
    enabledJWA: { idTokenSigningAlgValues: ["RS256", "PS256", "ES256", "ES384"] },
    features: {
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      devInteractions: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx, indicator) => ({
          scope: "",
          audience: indicator.split(":").at(-1),
          accessTokenTTL: lifetime,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: settings.alg } },
        }),
      },
    },
    pkce: { required: (ctx, client) => client.clientId !== "mycelium-cli" || ctx.oidc.route === "authorization" },
    issueRefreshToken: (ctx, client) => client.grantTypeAllowed("refresh_token"),
    expiresWithSession: () => false,
    extraTokenClaims: (ctx, token) => claims.get(token.accountId ?? token.clientId),
    findAccount: (ctx, id) => ({
      accountId: id,
      claims: () => ({ sub: id, name: id, preferred_username: id, email: `${id}@example.org`, ...claims.get(id) }),
    }),
    ttl: { IdToken: 3600, Session: 86400, Grant: 86400, Interaction: 3600, RefreshToken: 86400, DeviceCode: settings.device_s },
  };
}

function build() {
  provider = new Provider(issuer, configuration(newKeys()));
  provider.use(async (ctx, next) => {
    await next();
    if (ctx.path === "/device/auth" && ctx.status === 200) ctx.body = { ...ctx.body, interval: settings.interval_s };
  });
  answer = provider.callback();
}

const front = createServer((request, response) => {
  const path = new URL(request.url, issuer).pathname.replace(/\/[\w-]{43}(?=\/|$)/, "/*");
  counts[path] = (counts[path] ?? 0) + 1;
  const instead = scripted.find((script) => script.path === path && script.times > 0);
  if (!instead) return answer(request, response);
  instead.times -= 1;
  response.writeHead(instead.status, { "content-type": "application/json", ...instead.headers });
  return response.end(typeof instead.body === "string" ? instead.body : JSON.stringify(instead.body));
});

const listen = () => new Promise((done) => front.listen(settings.port, host, done));

const steer = {
  stop: () => new Promise((done) => front.close(done) && front.closeAllConnections()),
  start: listen,
  rotate: build,
  counts: () => counts,
  script: (script) => scripted.push(script),
  lifetime: ({ seconds }) => (lifetime = seconds),
  agent: ({ id, secret, method }) => agents.set(id, [secret, method]),
  revoke: ({ id }) => agents.delete(id),
  claims: ({ id, also }) => claims.set(id, also),
  // What a signed-in person's program would hold, without the person.
  token: async ({ id, client, audience }) => {
    const found = await provider.Client.find(client);
    const token = new provider.AccessToken({ client: found, accountId: id, scope: "", extra: claims.get(id) });
    const info = configuration({}).features.resourceIndicators.getResourceServerInfo(null, `urn:audience:${audience}`);
    token.resourceServer = new provider.ResourceServer(`urn:audience:${audience}`, info);
    return token.save();
  },
};

const control = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    const result = await steer[request.url.slice(1)](JSON.parse(Buffer.concat(chunks).toString() || "{}"));
    response.end(JSON.stringify({ value: result }));
  } catch (error) {
    response.writeHead(500).end(String(error.stack));
  }
});

build();
await listen();
control.listen(0, "127.0.0.1", () => console.log(`ready ${control.address().port}`));
process.stdin.on("end", () => process.exit(0)).resume();
