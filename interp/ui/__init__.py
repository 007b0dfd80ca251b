"""The dashboard's parts: the only code below `pages/` that imports Streamlit."""
