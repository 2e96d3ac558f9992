import edu.stanford.nlp.ling.CoreAnnotations;
import edu.stanford.nlp.ling.CoreLabel;
import edu.stanford.nlp.pipeline.Annotation;
import edu.stanford.nlp.pipeline.StanfordCoreNLP;
import edu.stanford.nlp.semgraph.SemanticGraph;
import edu.stanford.nlp.semgraph.SemanticGraphCoreAnnotations;
import edu.stanford.nlp.semgraph.SemanticGraphEdge;
import edu.stanford.nlp.trees.GrammaticalRelation;
import edu.stanford.nlp.util.CoreMap;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;

/** Parses captions, one per line on standard input, and writes them as CoNLL-U: basic UD v1 edges, PTB tags, lemmas. */
public final class SilverParser {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("annotators", "tokenize, ssplit, parse, lemma");
        StanfordCoreNLP pipeline = new StanfordCoreNLP(properties);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        for (String caption = lines.readLine(); caption != null; caption = lines.readLine()) {
            Annotation annotation = new Annotation(caption);
            pipeline.annotate(annotation);
            StringBuilder block = new StringBuilder("# newdoc\n");
            for (CoreMap sentence : annotation.get(CoreAnnotations.SentencesAnnotation.class)) {
                write(caption, sentence, block);
            }
            out.print(block);
            out.flush();
        }
    }

    private static void write(String caption, CoreMap sentence, StringBuilder block) {
        List<CoreLabel> words = sentence.get(CoreAnnotations.TokensAnnotation.class);
        SemanticGraph graph = sentence.get(SemanticGraphCoreAnnotations.BasicDependenciesAnnotation.class);
        int[] heads = new int[words.size() + 1];
        String[] labels = new String[words.size() + 1];
        for (SemanticGraphEdge edge : graph.edgeIterable()) {
            heads[edge.getDependent().index()] = edge.getGovernor().index();
            GrammaticalRelation relation = edge.getRelation();
            labels[edge.getDependent().index()] = relation.toString();
        }
        graph.getRoots().forEach(root -> labels[root.index()] = "root");
        block.append("# text = ").append(caption).append('\n');
        for (CoreLabel word : words) {
            int index = word.index();
            String label = labels[index] == null ? "_" : labels[index];
            String[] fields = {
                Integer.toString(index), word.word(), word.lemma(), "_", word.tag(), "_",
                label.equals("_") ? "_" : Integer.toString(heads[index]), label,
                "_", misc(word, caption),
            };
            block.append(String.join("\t", fields)).append('\n');
        }
        block.append('\n');
    }

    private static String misc(CoreLabel word, String caption) {
        int end = word.endPosition();
        boolean glued = end < caption.length() && !Character.isWhitespace(caption.charAt(end));
        String surface = caption.substring(word.beginPosition(), end);
        String note = surface.equals(word.word()) ? "" : "Surface=" + surface;
        String space = glued ? "SpaceAfter=No" : "";
        String both = note.isEmpty() || space.isEmpty() ? space + note : space + "|" + note;
        return both.isEmpty() ? "_" : both;
    }
}
