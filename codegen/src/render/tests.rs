use super::*;

fn templates(body: &str) -> Result<Templates, RenderError> {
    let text = format!("#line 1 \"/pagesmith/templates/echo.cu.tera\"\n{body}");
    Templates::new(&[("echo.cu.tera", &text)], &[])
}

/// The lines that `body` renders to as the echo template.
fn rendered(body: &str) -> String {
    let text = templates(body).unwrap().render_echo().unwrap().text;
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("#line"))
        .collect();
    lines.join("\n")
}

#[test]
fn cuda_and_ptx_pass_through_untouched() {
    let torture = r#"asm volatile("{%0, %1}, {%2};" : "=r"(a) : "r"(b));
asm volatile("{ .reg .pred p; @p bra L; @!p ret; }");
int a[1][2] = {{0}, {1}}; f<g<h<1>>>(x); b = c << 2 >> 1; d[e[0]] = 1;
{#pragma unroll
}
{% not a tag %} {{ not a variable }} {# not a comment #}
x %= y; s = "a & b < c > d \" ' @"; // e@f.g @ } ] #
[[maybe_unused]] int y = x[a[0]]; "@" "]"@"}""#;
    assert_eq!(rendered(torture), torture);
}

#[test]
fn the_three_delimiters_work() {
    let body = "@# a comment #@@[ for struct in structs ]@@{ struct.name }@;@[ endfor ]@";
    assert_eq!(
        rendered(body),
        "DecodeParams;MergeParams;WorkItem;MergeItem;"
    );
}

#[test]
fn an_unknown_variable_is_refused_with_the_known_ones_even_in_a_condition() {
    for body in ["@{ structz }@", "@[ if structz ]@a@[ endif ]@"] {
        let error = templates(body).unwrap().render_echo().unwrap_err();
        match &error {
            RenderError::UnknownVariables { unknown, .. } => assert_eq!(unknown, &["structz"]),
            other => panic!("{other:?}"),
        }
        assert!(error.to_string().contains("available: structs"), "{error}");
    }
}

#[test]
fn floats_get_their_suffix_and_a_value_without_literal_is_refused() {
    for (value, literal) in [
        ("0.125", "0.125f"),
        ("2", "2.0f"),
        ("0.1", "0.1f"),
        ("0.0000000001", "1e-10f"),
        ("-3.5", "-3.5f"),
    ] {
        assert_eq!(rendered(&format!("@{{ {value} | float }}@")), literal);
    }
    let beyond = format!("@{{ {:.1} | float }}@", 1e300);
    let error = templates(&beyond).unwrap().render_echo().unwrap_err();
    assert!(error.to_string().contains("no float literal"), "{error}");
}

#[test]
fn a_syntax_error_points_at_its_line_of_the_template() {
    let error = templates("@[ if structs ]@\na\n@[ endif ]@\n@{ 1 + }@").unwrap_err();
    assert!(error.to_string().contains("echo.cu.tera:5:"), "{error}");
}

#[test]
fn a_missing_template_is_named_with_those_there_are() {
    let none = Templates::new(&[], &[]).unwrap();
    let error = none.render_echo().unwrap_err().to_string();
    assert!(error.contains("echo.cu.tera"), "{error}");
}

#[test]
fn the_lines_of_a_repeated_block_keep_their_numbers() {
    let body = "@[ for struct in structs ]@\n@{ struct.name }@\n@[ endfor ]@\nend";
    let text = templates(body).unwrap().render_echo().unwrap().text;
    let file = "/pagesmith/templates/echo.cu.tera";
    for (line, number) in [("DecodeParams", 3), ("MergeParams", 3), ("end", 5)] {
        let numbered = format!("#line {number} \"{file}\"\n{line}\n");
        assert!(text.contains(&numbered), "{text}");
    }
}

#[test]
fn a_source_holds_the_abi_header_only_when_it_includes_it() {
    let of = |body| templates(body).unwrap().render_echo().unwrap().headers;
    assert_eq!(
        of("#include \"pagesmith/abi.cuh\"")[0].name,
        abi::HEADER_NAME
    );
    assert_eq!(of("int a;"), []);
}
