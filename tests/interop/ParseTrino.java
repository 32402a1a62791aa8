/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the statements of SQL files with the grammar of Trino: ParseTrino FILE... Exits with 1 at the first error. */
import io.trino.sql.parser.ParsingException;
import io.trino.sql.parser.SqlParser;
import java.nio.file.Files;
import java.nio.file.Path;

public class ParseTrino {
    public static void main(String[] files) throws Exception {
        SqlParser parser = new SqlParser();
        for (String file : files) {
            int count = 0;
            String text = Files.readString(Path.of(file)).replaceAll("--[^\n]*", "");
            for (String statement : text.split(";\\s*(\n|$)")) {
                if (statement.isBlank()) {
                    continue;
                }
                try {
                    parser.createStatement(statement);
                } catch (ParsingException e) {
                    System.out.println(file + ": statement " + (count + 1) + ": " + e.getMessage() + "\n" + statement);
                    System.exit(1);
                }
                count++;
            }
            System.out.println(file + ": " + count + " statements");
        }
    }
}
