// Scores two captions: as a batch, on scene graphs as people draw them, as a stream, with what is wrong.   npm install && node score.mjs [HOST:PORT]
// SPICEGRAPH_TOKEN holds a token where the server demands one.
import path from "node:path";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

const here = path.dirname(fileURLToPath(import.meta.url));
const protos = process.env.SPICEGRAPH_PROTO ?? path.join(here, "../../../proto");
const files = ["v1/evaluation_service", "v1/reference_service", "report/v1/report"].map((n) => `spicegraph_api/${n}.proto`);
const definition = protoLoader.loadSync(files, { includeDirs: [protos], keepCase: true, enums: String, arrays: true });
const { v1, report } = grpc.loadPackageDefinition(definition).spicegraph;

// A server that is busy refuses a call at once and says in grpc-retry-pushback-ms when to make it again.
const service = "spicegraph.v1.EvaluationService";
const serviceConfig = {
  loadBalancingConfig: [{ round_robin: {} }],
  methodConfig: [
    {
      name: ["Score", "ScoreStream", "ParseCaptions"].map((method) => ({ service, method })),
      retryPolicy: {
        maxAttempts: 5,
        initialBackoff: "0.2s",
        maxBackoff: "5s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
      },
    },
  ],
};
const address = process.argv[2] ?? "localhost:50051";
const credentials = grpc.credentials.createInsecure();
const client = new v1.EvaluationService(address, credentials, { "grpc.service_config": JSON.stringify(serviceConfig) });
const reports = new report.v1.ReportService(address, credentials);
const metadata = new grpc.Metadata();
if (process.env.SPICEGRAPH_TOKEN) metadata.set("authorization", `Bearer ${process.env.SPICEGRAPH_TOKEN}`);

const items = [
  { id: "1", candidate: "a man rides a brown horse", references: ["a man riding a horse", "a brown horse"] },
  { id: "2", candidate: "two dogs on a bed", references: ["a cat sleeping on a bed"] },
];
const values = (scores) => Object.fromEntries(scores.map(({ name, value }) => [name, value ?? null]));

function score(request) {
  const deadline = Date.now() + 30_000;
  return new Promise((resolve, reject) =>
    client.Score(request, metadata, { deadline }, (error, reply) => (error ? reject(error) : resolve(reply))),
  );
}

async function stream(items) {
  const call = client.ScoreStream(metadata);
  for (const item of items) call.write({ items: { items: [item] } });
  call.end();
  const results = {};
  let corpus = null;
  for await (const reply of call) {
    for (const item of reply.items) results[item.id] = values(item.scores);
    corpus = reply.corpus ?? corpus;
  }
  return { items: results, corpus: values(corpus.scores) };
}

// How well the captions name colours, and the most frequent errors: one call for both.
async function analyze(items) {
  const call = reports.Analyze(metadata);
  call.write({ settings: { systems: ["mine"], without_human: true } });
  const batch = items.map(({ id, candidate, references }) => ({ id, candidates: [candidate], references }));
  call.write({ items: { items: batch } });
  call.end();
  let found = null;
  for await (const reply of call) found = reply.report ?? found;
  const [mine] = found.systems;
  const errors = mine.kinds
    .filter((kind) => kind.primary && kind.side === "ERROR_SIDE_INVENTED")
    .flatMap((kind) => kind.groups.map((group) => ({ kind: kind.key, words: group.words, count: group.count })));
  const { pr, re, f, tp = 0, fp = 0, fn = 0 } = mine.categories.find((row) => row.name === "Color");
  return { color: { pr, re, f, tp, fp, fn }, errors: errors.sort((a, b) => b.count - a.count).slice(0, 5) };
}

const results = (reply) => ({
  items: Object.fromEntries(reply.items.map((item) => [item.id, values(item.scores)])),
  corpus: values(reply.corpus.scores),
});
const batch = results(await score({ items, metrics: ["spice"], detail: "DETAIL_SCORES" }));
const scene = results(await score({ items, metrics: ["spice"], graph_style: "GRAPH_STYLE_SCENE" }));
const error = await score({ items: [{ id: "1", candidate: "a dog" }] }).catch((error) => error);
const told = await analyze(items);
console.log(JSON.stringify({ batch, scene, stream: await stream(items), report: told, error: error.details }, null, 1));
client.close();
reports.close();
