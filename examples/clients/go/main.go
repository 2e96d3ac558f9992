// Scores captions with a spicegraph server: as a batch, on scene graphs as people draw them, and as a stream; and asks what a
// captioner gets wrong.
//
//	./generate.sh && go run . [HOST:PORT]
//
// SPICEGRAPH_TOKEN holds a token where the server demands one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sort"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	reports "example.com/spicegraph/gen/spicegraph_api/report/v1"
	pb "example.com/spicegraph/gen/spicegraph_api/v1"
)

// A server that is busy refuses a call at once and says in grpc-retry-pushback-ms when to make it again.
const serviceConfig = `{
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{
    "name": [
      {"service": "spicegraph.v1.EvaluationService", "method": "Score"},
      {"service": "spicegraph.v1.EvaluationService", "method": "ScoreStream"},
      {"service": "spicegraph.v1.EvaluationService", "method": "ParseCaptions"}
    ],
    "retryPolicy": {
      "maxAttempts": 5,
      "initialBackoff": "0.2s",
      "maxBackoff": "5s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]
    }
  }]
}`

var items = []*pb.Item{
	{Id: "1", Candidate: "a man rides a brown horse", References: []string{"a man riding a horse", "a brown horse"}},
	{Id: "2", Candidate: "two dogs on a bed", References: []string{"a cat sleeping on a bed"}},
}

func main() {
	address := "localhost:50051"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	connection, err := grpc.NewClient(
		address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(serviceConfig),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if token := os.Getenv("SPICEGRAPH_TOKEN"); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	client := pb.NewEvaluationServiceClient(connection)
	if err := score(ctx, client, "batch", pb.GraphStyle_GRAPH_STYLE_SPICE); err != nil {
		log.Fatal(err)
	}
	if err := score(ctx, client, "scene", pb.GraphStyle_GRAPH_STYLE_SCENE); err != nil {
		log.Fatal(err)
	}
	if err := stream(ctx, client); err != nil {
		log.Fatal(err)
	}
	if err := analyze(ctx, reports.NewReportServiceClient(connection)); err != nil {
		log.Fatal(err)
	}
}

func score(ctx context.Context, client pb.EvaluationServiceClient, way string, style pb.GraphStyle) error {
	reply, err := client.Score(ctx, &pb.ScoreRequest{Items: items, Metrics: []string{"spice"}, GraphStyle: style})
	if err != nil {
		return err
	}
	for _, item := range reply.GetItems() {
		print(way, item.GetId(), item.GetScores())
	}
	print(way, "corpus", reply.GetCorpus().GetScores())
	return nil
}

func stream(ctx context.Context, client pb.EvaluationServiceClient) error {
	call, err := client.ScoreStream(ctx)
	if err != nil {
		return err
	}
	for _, item := range items {
		payload := &pb.ScoreStreamRequest_Items{Items: &pb.ItemBatch{Items: []*pb.Item{item}}}
		if err := call.Send(&pb.ScoreStreamRequest{Payload: payload}); err != nil {
			return err
		}
	}
	if err := call.CloseSend(); err != nil {
		return err
	}
	for {
		reply, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, item := range reply.GetItems() {
			print("stream", item.GetId(), item.GetScores())
		}
		if reply.GetCorpus() != nil {
			print("stream", "corpus", reply.GetCorpus().GetScores())
		}
	}
}

// analyze prints how well the captions name colours, and the most frequent confusions: one call for both.
func analyze(ctx context.Context, client reports.ReportServiceClient) error {
	call, err := client.Analyze(ctx)
	if err != nil {
		return err
	}
	settings := &reports.AnalysisSettings{Systems: []string{"mine"}, WithoutHuman: true}
	payload := &reports.AnalyzeRequest_Settings{Settings: settings}
	if err := call.Send(&reports.AnalyzeRequest{Payload: payload}); err != nil {
		return err
	}
	batch := &reports.SystemsBatch{}
	for _, item := range items {
		batch.Items = append(batch.Items, &reports.SystemsItem{
			Id: item.GetId(), Candidates: []string{item.GetCandidate()}, References: item.GetReferences(),
		})
	}
	if err := call.Send(&reports.AnalyzeRequest{Payload: &reports.AnalyzeRequest_Items{Items: batch}}); err != nil {
		return err
	}
	if err := call.CloseSend(); err != nil {
		return err
	}
	for {
		reply, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		report := reply.GetReport()
		if report == nil {
			continue // how far it is
		}
		mine := report.GetSystems()[0]
		for _, row := range mine.GetCategories() {
			if row.GetName() == "Color" {
				fmt.Printf("report\tColor\t%.3f\t%.3f\t%.3f\t%d\t%d\t%d\n",
					row.GetPr(), row.GetRe(), row.GetF(), row.GetTp(), row.GetFp(), row.GetFn())
			}
		}
		type confusion struct {
			title string
			group *reports.ErrorGroup
		}
		var found []confusion
		for _, kind := range mine.GetKinds() {
			for _, group := range kind.GetGroups() {
				if kind.GetPrimary() && kind.GetSide() == pb.ErrorSide_ERROR_SIDE_INVENTED {
					found = append(found, confusion{kind.GetTitle(), group})
				}
			}
		}
		sort.SliceStable(found, func(i, j int) bool { return found[i].group.GetCount() > found[j].group.GetCount() })
		if len(found) > 5 {
			found = found[:5]
		}
		for _, each := range found {
			fmt.Printf("report\t%s\t%s\t%d\n", each.title, strings.Join(each.group.GetWords(), " / "), each.group.GetCount())
		}
	}
}

func print(way, id string, scores []*pb.Score) {
	for _, score := range scores {
		if score.Value == nil {
			fmt.Printf("%s\t%s\t%s\tundefined\n", way, id, score.GetName())
		} else {
			fmt.Printf("%s\t%s\t%s\t%.17g\n", way, id, score.GetName(), score.GetValue())
		}
	}
}
